"""Which agents are this process's."""

from perdure.host.placement import AlwaysMine


def test_the_only_process_owns_every_agent_under_its_epoch() -> None:
    placement = AlwaysMine(7)
    assert [placement.epoch_of(key) for key in ("agent/room", "other/hall")] == [7, 7]
