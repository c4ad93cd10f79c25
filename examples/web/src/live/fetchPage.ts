import type { GraphQLTaggedNode } from "react-relay";
import { createOperationDescriptor, getRequest } from "relay-runtime";
import type { Environment, OperationType, PayloadData } from "relay-runtime";

interface Fetched<Q extends OperationType> {
  data: NonNullable<Q["rawResponse"]>;
  /** Write the response into the store. */
  commit: () => void;
}

/**
 * Fetch a page without writing it into the store. The query must have the directive `@raw_response_type`.
 *
 * Writing a first page into the store replaces a list of several pages. Pages that are committed together appear at
 * once.
 */
export async function fetchPage<Q extends OperationType>(
  environment: Environment,
  query: GraphQLTaggedNode,
  variables: Q["variables"],
): Promise<Fetched<Q>> {
  const operation = createOperationDescriptor(getRequest(query), variables);
  const { params } = operation.request.node;
  const response = await environment.getNetwork().execute(params, operation.request.variables, { force: true }).toPromise();
  if (!response || !("data" in response) || !response.data || response.errors?.length) {
    const errors = response && "errors" in response ? response.errors : [];
    throw Object.assign(new Error(`The server did not answer ${params.name}.`), { errors });
  }
  const data: PayloadData = response.data;
  return { data, commit: () => environment.commitPayload(operation, data) };
}
