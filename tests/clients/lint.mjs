// Lints the schema and the operations of a folder with the recommended rules of graphql-eslint.
// Usage: node lint.mjs SCHEMA FOLDER; prints the number of files and the messages as one JSON object.
import graphql from "@graphql-eslint/eslint-plugin";
import { ESLint } from "eslint";

const [schema, folder] = process.argv.slice(2);
const { configs, parser } = graphql;

// Exceptions, each with its reason.
const WITHOUT_ID = {
  suffixes: ["Connection", "Edge", "Payload"], // pages and results of mutations, which are never fetched again
  types: [
    ...["AuthorAdded", "AuthorHidden", "AuthorRemoved", "PostAdded", "PostRemoved"], // events have a cursor and are no objects
    ...["RepostAdded", "RepostRemoved", "UserFollowed", "UserUnfollowed", "Checkpoint", "Gap"],
    ...["NotificationAdded", "NotificationsChanged", "PostChanged", "ReplyAdded", "TimelineChanged"],
    ...["ImageAttachment", "VideoAttachment", "HashtagEntity", "LinkEntity", "MentionEntity"], // parts of a post, which come with it
    "PostSearch", // the answer to one search, whose parameters identify it
    ...["Credentials", "FollowResult", "Location", "PageInfo", "RateLimit", "UserError", "UserErrorParam"], // plain values
  ],
};
const schemaRules = {
  ...configs["flat/schema-recommended"].rules,
  ...configs["flat/schema-relay"].rules,
  "@graphql-eslint/strict-id-in-types": ["error", { exceptions: WITHOUT_ID }],
  // Connections have `nodes` next to `edges`, and payloads have lists of errors and results.
  "@graphql-eslint/relay-edge-types": ["error", { listTypeCanWrapOnlyEdgeType: false }],
  // The only directive is `@oneOf`, which GraphQL itself describes.
  "@graphql-eslint/require-description": ["error", { types: true, rootField: true, FieldDefinition: true }],
};

const operationRules = {
  ...configs["flat/operations-recommended"].rules,
  // One more than recommended: the post of a repost is one level below that of other entries.
  "@graphql-eslint/selection-set-depth": ["error", { maxDepth: 8 }],
};

function config(files, rules) {
  const parserOptions = { graphQLConfig: { schema, documents: `${folder}/*.graphql` } };
  return { files, rules, languageOptions: { parser, parserOptions }, plugins: { "@graphql-eslint": graphql } };
}

const eslint = new ESLint({
  cwd: "/",
  overrideConfigFile: true,
  overrideConfig: [
    config(["**/schema.graphql"], schemaRules),
    config([`${folder.slice(1)}/*.graphql`], operationRules),
  ],
});
const results = await eslint.lintFiles([schema, `${folder}/*.graphql`]);
const messages = results.flatMap(({ filePath, messages }) =>
  messages.map(({ ruleId, line, message }) => `${filePath.split("/").at(-1)}:${line} ${ruleId}: ${message}`),
);
console.log(JSON.stringify({ files: results.length, messages }));
