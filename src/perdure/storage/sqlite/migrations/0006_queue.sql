-- The queue: what agents have to do one after the other, as soon as they can.

create table queued (
    number integer primary key,                 -- grows in the order in which items were queued
    agent integer not null,
    id text not null,
    callback text not null,
    payload text not null,                      -- JSON
    created_ms integer not null,
    retry text,                                 -- JSON
    begun integer not null,                     -- how often it was begun; 0 while it waits
    unique (agent, id)
) strict;
