"""An MCP server with one tool."""

import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, result = message["method"], {}
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "counter", "version": "0.9.0"},
        }
    elif method == "tools/list":
        result = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        lib = os.path.basename(os.environ["PYTHONPATH"])
        result = {"content": [{"type": "text", "text": f"1 2 3 from {lib}"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
