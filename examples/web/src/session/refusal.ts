/** A query whose input the server refuses, with the server's reason. It would be refused again. */
export class Refusal extends Error {}
