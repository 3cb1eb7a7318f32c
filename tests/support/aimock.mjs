#!/usr/bin/env node
// Starts @copilotkit/aimock, a server of the Messages and Chat Completions APIs that was not written
// here, on a free port of loopback with the answers of one file. Prints the port and serves until its
// standard input ends.
//
//     node aimock.mjs BUILD_FOLDER FIXTURES.json
//
// The package is installed into the build folder when it is not there yet; where npm or its registry
// is missing, the exit code is 77. Base URLs: http://127.0.0.1:PORT for Anthropic, the same with /v1
// for OpenAI. Any key will do.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const VERSION = "1.43.0";
const SKIPPED = 77;

function installed(folder) {
  return join(folder, "node_modules", "@copilotkit", "aimock", "dist", "index.js");
}

function install(folder) {
  mkdirSync(folder, { recursive: true });
  // Its own package.json, so that npm does not look for one above.
  writeFileSync(join(folder, "package.json"), '{"private":true}\n');
  execFileSync(
    "npm",
    ["install", "--no-audit", "--no-fund", "--ignore-scripts", `@copilotkit/aimock@${VERSION}`],
    { cwd: folder, stdio: ["ignore", "ignore", "inherit"], timeout: 120000 },
  );
}

const [folderArgument, fixtures] = process.argv.slice(2);
if (!fixtures) {
  console.error("usage: aimock.mjs BUILD_FOLDER FIXTURES.json");
  process.exit(2);
}
const folder = resolve(folderArgument);
if (!existsSync(installed(folder))) {
  try {
    install(folder);
  } catch (error) {
    console.error(`aimock cannot be installed: ${error.message.split("\n")[0]}`);
    process.exit(SKIPPED);
  }
}
const { LLMock } = await import(pathToFileURL(installed(folder)));
const mock = new LLMock({ port: 0, host: "127.0.0.1", logLevel: "silent" });
for (const fixture of JSON.parse(readFileSync(fixtures, "utf8")).fixtures) {
  for (const call of fixture.response.toolCalls ?? []) call.arguments = JSON.stringify(call.arguments);
  mock.addFixture(fixture);
}
await mock.start();
console.log(new URL(mock.url).port);
process.stdin.resume();
process.stdin.on("end", async () => {
  await mock.stop();
  process.exit(0);
});
