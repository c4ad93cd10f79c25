/** The error of a query whose input the server refused, with the server's reason. Repeating the query is pointless. */
export class Refusal extends Error {}
