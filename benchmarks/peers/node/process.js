// What both servers do around their life: tell the port, end with the standard input.

/** Says where the server listens, and ends this process when whoever started it does. */
export function announce(port) {
  console.log(port)
  process.stdin.resume().on('end', () => process.exit(0))
}
