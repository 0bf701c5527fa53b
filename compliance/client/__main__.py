"""`python -m compliance.client` is the `writegate` command."""

import sys

from compliance.client.cli import main

sys.exit(main())
