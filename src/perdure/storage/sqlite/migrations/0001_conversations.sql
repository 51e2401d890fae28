-- Conversations: agents, their named values, the message tree, turns and their chunk logs.
--
-- Every row belongs to an agent, by number. JSON is text, kept byte for byte. Tables with large bodies keep their rowid:
-- a row that goes in is then appended, where a clustered one would rewrite a page of its own per agent.

create table store (
    only integer primary key check (only = 1),
    epoch integer not null                      -- how often the store was opened
) strict;

insert into store (only, epoch) values (1, 0);

create table agent (
    id integer primary key,
    key text not null unique                    -- the canonical path
) strict;

create table kv (
    agent integer not null,
    namespace text not null,
    key text not null,
    body text not null,
    primary key (agent, namespace, key)
) strict, without rowid;

create table message (
    agent integer not null,
    pos integer not null,
    id text not null,
    parent integer check (parent < pos),        -- hence no path can run in a circle
    role text not null,
    at_ms integer not null,
    body text not null,
    primary key (agent, pos),
    unique (agent, id)
) strict;

create table turn (
    number integer primary key,                 -- grows in the order in which turns were accepted
    agent integer not null,
    id text not null,
    status text not null,
    trigger text not null,
    request text not null,
    message_id text not null,
    error text,
    opened_ms integer not null,
    closed_ms integer,
    closing integer,                            -- null while open, then counts the agent's closed turns
    unique (agent, id)
) strict;

create index turn_open on turn (agent) where closing is null;
create index turn_closed on turn (agent, closing) where closing is not null;

create table chunk (
    turn integer not null,                      -- turn.number
    position integer not null,                  -- seq of the first chunk in the segment
    bodies text not null,
    primary key (turn, position)
) strict;
