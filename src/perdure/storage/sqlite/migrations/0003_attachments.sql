-- Attachments: large data of messages, kept once per agent and content. The message keeps where it was taken out.

create table attachment (
    agent integer not null,
    digest text not null,                       -- SHA-256 in hexadecimal
    data blob not null,
    primary key (agent, digest)
) strict;

alter table message add column attachments text; -- JSON: a list of [offset, digest, size]

-- Which messages have attachments, without reading past their bodies.
create index message_attachments on message (agent, attachments) where attachments is not null;
