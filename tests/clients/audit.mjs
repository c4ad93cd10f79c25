// Runs the audits of graphql-http against the URL given; prints one JSON object: the names of those that failed.
import { serverAudits } from "graphql-http";

const [url] = process.argv.slice(2);
const results = [];
for (const audit of serverAudits({ url, fetchFn: fetch })) {
  const result = await audit.fn();
  results.push({ name: audit.name, status: result.status, reason: result.reason });
}
const failed = results.filter(({ status }) => status !== "ok");
console.log(JSON.stringify({ total: results.length, failed }));
