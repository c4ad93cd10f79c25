const LIMIT = 1_000;

/** Return how many characters are left for a text, counted as the server does: after trimming and normalising. */
export function charactersLeft(text: string): number {
  return LIMIT - Array.from(text.trim().normalize("NFC")).length;
}
