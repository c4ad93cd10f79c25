// The start and the end of both servers.

/** Prints the server's port, and ends this process with its standard input. */
export function announce(port) {
  console.log(port)
  process.stdin.resume().on('end', () => process.exit(0))
}
