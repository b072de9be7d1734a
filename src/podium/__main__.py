"""``python -m podium``: the ``podium`` command of this interpreter."""

from podium.cli import main

if __name__ == "__main__":
    main()
