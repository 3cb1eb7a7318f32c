#!/usr/bin/env node
// An HTTP/2 server of the Messages API on loopback: each answer's text is the HTTP version that was
// spoken and the number of the connection. Arguments: certificate, key. Prints its port and serves
// until its standard input ends.
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";

const [cert, key] = process.argv.slice(2);
let connections = 0;
const server = createSecureServer({
  cert: readFileSync(cert),
  key: readFileSync(key),
  allowHTTP1: true,
});
server.on("session", (session) => {
  session.number = ++connections;
});
server.on("request", (request, response) => {
  const number = request.stream?.session?.number ?? 0;
  request.resume();
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify({
        id: "msg_1",
        model: "m",
        content: [{ type: "text", text: `${request.httpVersion} ${number}` }],
        stop_reason: "end_turn",
        usage: {},
      }),
    );
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
