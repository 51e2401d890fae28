"""Every operation and every query of the contract has its function."""

from perdure.storage import contract, families, interactions, queue, timers
from perdure.storage.sqlite.dispatch import ANSWERS, APPLIES, UNBOUNDED


def kinds_of(base: type) -> set[type]:
    modules = (contract, families, interactions, queue, timers)
    found = {getattr(module, name) for module in modules for name in module.__all__}
    return {kind for kind in found if isinstance(kind, type) and issubclass(kind, base) and kind is not base}


def test_every_operation_of_the_contract_can_be_applied() -> None:
    assert set(APPLIES) == kinds_of(contract.Operation)


def test_every_query_of_the_contract_can_be_answered() -> None:
    assert set(ANSWERS) == kinds_of(contract.Query)
    assert set(ANSWERS) >= UNBOUNDED
