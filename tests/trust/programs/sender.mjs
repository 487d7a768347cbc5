/**
 * Sends one request over and over and ends its connection in a given way, without reading an answer.
 *
 * Argument: JSON `{ host, port, localPort, count, pauseMs, end, request }`, where `end` is `close`, `half`, `reset` or
 * `hold` (connects, sends nothing, says its port and stays). Needs Node.js: it alone can reset a connection here.
 */
import { connect } from "node:net";

const { host, port, localPort, count = 1, pauseMs = 0, end, request = "" } = JSON.parse(process.argv[2]);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function once() {
  const socket = connect({ host, port, ...(localPort ? { localPort, localAddress: "127.0.0.1" } : {}) });
  socket.on("error", () => {});
  if (
    !await new Promise((done) => socket.once("connect", () => done(true)).once("error", () => done(false)))
  ) return;
  if (end === "hold") {
    console.log(socket.localPort);
    return await wait(600_000);
  }
  await wait(pauseMs);
  await new Promise((sent) => socket.write(request, sent));
  if (end === "reset") socket.resetAndDestroy();
  else if (end === "close") socket.destroy();
  else {
    socket.end();
    await Promise.race([new Promise((over) => socket.once("data", over).once("close", over)), wait(1_000)]);
    socket.destroy();
  }
  return true;
}

let connected = 0;
for (let index = 0; index < count; index++) if (await once()) connected++;
console.log(connected);
process.exit(0);
