"""`fanline` with a demo of a tenth of the users and posts, for tests of its process.

Seeding the whole world takes three quarters of the CPU time of such a test. Other tests seed it.
"""

import sys

from server.cli.main import main
from server.seeding.load import demo_source

PEOPLE, POSTS = 30, 500
SMALL_DEMO = (sys.executable, "-P", __file__)
"""The command. The option keeps the modules in this folder from shadowing others of the same name."""

if __name__ == "__main__":
    demo_source.__defaults__ = (PEOPLE, POSTS)
    main()
