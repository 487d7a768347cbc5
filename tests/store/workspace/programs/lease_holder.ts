/** Takes a write lease on the file in the first argument, says so, and does not give it back however it is asked. */
const [file = ""] = Deno.args;
const O_RDWR = 2;
const F_SETLEASE = 1024;
const F_WRLCK = 1;
const SIGIO = 29;
const SIG_IGN = 1n;

const { symbols } = Deno.dlopen("libc.so.6", {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
  signal: { parameters: ["i32", "usize"], result: "usize" },
});
// By this signal the kernel asks for the lease; unhandled it would end this program.
symbols.signal(SIGIO, SIG_IGN);
const fd = symbols.open(new TextEncoder().encode(`${file}\0`), O_RDWR);
const taken = fd >= 0 && symbols.fcntl(fd, F_SETLEASE, F_WRLCK) === 0;
await Deno.stdout.write(new TextEncoder().encode(taken ? "taken\n" : "refused\n"));
if (taken) await new Promise((resolve) => setTimeout(resolve, 60_000));
