"""All rows in one place, and how many each source must have."""

from typing import Final

from tests.requirements import codemode, engine, faults, product, protocol, workspace
from tests.requirements.rows import Requirement

__all__ = ["COUNTS", "ROWS"]

COUNTS: Final = {"protocol": 111, "engine": 144, "workspace": 87, "codemode": 129, "fault": 208, "product": 3}
"""Statements per source. The first five are the references' 679; `product` holds what differs from the documents."""

ROWS: Final[tuple[Requirement, ...]] = (
    *protocol.ROWS,
    *engine.ROWS,
    *workspace.ROWS,
    *codemode.ROWS,
    *faults.ROWS,
    *product.ROWS,
)
