#!/usr/bin/env python3
"""Runs echo.lua against byte_server.py. Arguments: the program, the server."""
import os
import subprocess
import sys

program, server = sys.argv[1:3]
peer = subprocess.Popen([sys.executable, server], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
port = peer.stdout.readline().strip()
script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "echo.lua")
done = subprocess.run([program, "run", script, port], timeout=60)
peer.stdin.close()
peer.wait()
sys.exit(done.returncode)
