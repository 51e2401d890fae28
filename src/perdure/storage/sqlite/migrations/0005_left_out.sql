-- Messages that lost their turn to a later one: they are kept and shown, and left out of what models are shown.

alter table message add column left_out integer; -- 1, or null
