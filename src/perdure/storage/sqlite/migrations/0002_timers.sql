-- Timers: what agents have to do later, also when they are not in memory.

create table timer (
    number integer primary key,                 -- grows in the order in which timers were made
    agent integer not null,
    id text not null,
    kind text not null,                         -- delayed, scheduled, cron or interval
    callback text not null,
    payload text not null,                      -- JSON
    due_ms integer not null,
    created_ms integer not null,
    cron text,
    tz text,
    interval_ms integer,
    retry text,                                 -- JSON
    begun integer not null,                     -- how often the run that is not over was begun; 0 while it waits
    unique (agent, id)
) strict;

create index timer_due on timer (due_ms);
create index timer_begun on timer (agent) where begun > 0;
create index timer_interval on timer (agent, due_ms, interval_ms) where interval_ms is not null;
