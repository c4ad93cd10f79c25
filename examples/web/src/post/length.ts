const LIMIT = 1_000;

/** Return how many characters a text may still have. Counted as by the server: after trimming and normalising. */
export function charactersLeft(text: string): number {
  return LIMIT - Array.from(text.trim().normalize("NFC")).length;
}
