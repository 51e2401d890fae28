-- Interactions: tool calls that wait, or waited, for a person or a page.

create table interaction (
    number integer primary key,                 -- grows in the order in which they were asked
    agent integer not null,
    call text not null,
    turn text not null,                         -- turn.id, also of a turn that was forgotten
    state text not null,                        -- waiting, approved, running or settled
    body text not null,                         -- JSON: arguments, decision, who, when
    unique (agent, call)
) strict;

create index interaction_open on interaction (agent, turn) where state <> 'settled';
create index interaction_turn on interaction (agent, turn);
