"""The marker that ties a test to the requirements it proves. Reads no row, so that tests import it at no cost."""

import pytest

__all__ = ["requirement"]


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Mark a test function, a test class, a module (`pytestmark`) or a `pytest.param` with the rows it proves.

    The ids are written as plain string literals, so that they can be found without running anything.
    """
    return pytest.mark.requirement(*ids)
