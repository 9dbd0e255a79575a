"""An agent that speaks the Agent Client Protocol and does what its script says. It runs as a program.

The script is a JSON object, `{method: [steps]}`: what it does when that method is asked for. A step is a message that
it sends (`@ID@` stands for the id of the request), `{"wait": true}` (for an answer of the client's), `{"raw": text}` or
`{"exit": code}`. What it received lies in its folder at the end, in `script.received`, a line for each message.
"""

import json
import sys
from pathlib import Path


def main(script_file: Path) -> None:
    script = json.loads(script_file.read_text())
    with Path("script.received").open("w") as received:
        for line in sys.stdin:
            print(line, end="", file=received, flush=True)
            asked = json.loads(line)
            for step in script.get(asked.get("method"), ()):
                if "wait" in step:
                    print(sys.stdin.readline(), end="", file=received, flush=True)
                elif "exit" in step:
                    sys.exit(step["exit"])
                else:
                    text = step.get("raw") or json.dumps({"jsonrpc": "2.0", **step})
                    print(text.replace('"@ID@"', str(asked["id"])), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
