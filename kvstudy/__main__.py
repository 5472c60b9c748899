"""Where the command begins. Before it is imported, too, Ctrl-C ends it in one line."""

import sys


def main() -> None:
    try:
        from kvstudy.cli import main as run
    except KeyboardInterrupt:
        print("kvstudy: interrupted", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
