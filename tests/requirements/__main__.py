"""`python -m tests.requirements`: how many requirements are tested; with ids or an owner, the rows themselves."""

import argparse

from tests.requirements.manifest import ROWS
from tests.requirements.proofs import collect
from tests.requirements.report import describe, listing, report

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Print the report, or the rows asked for; an id that does not exist ends with exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument(
        "ids", nargs="*", metavar="id", help="show these rows with their tests, for example fault:RS-01"
    )
    parser.add_argument("--owner", metavar="TEXT", help="list the rows whose owner's title contains TEXT")
    options = parser.parse_args(arguments)
    proofs = collect()
    if options.ids:
        rows = {row.id: row for row in ROWS}
        for key in options.ids:
            if key not in rows:
                parser.error(f"{key} is not a requirement")
            print(describe(rows[key], proofs.claims))
    elif options.owner:
        wanted = options.owner.casefold()
        print(listing([row for row in ROWS if wanted in row.owner.casefold()], proofs.proven))
    else:
        print(report(ROWS, proofs.proven))


if __name__ == "__main__":
    main()
