"""``python -m perdure``."""

import sys

from perdure.cli import main

sys.exit(main())
