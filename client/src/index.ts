export { live } from "./live.js";
export type { LiveEvent, LiveOptions, LiveSink } from "./live.js";
export { indexFor } from "./order.js";
export type { ListedEdge, LoadedList } from "./order.js";
export { pause } from "./pause.js";
export { failure } from "./problems.js";
export type { Failure } from "./problems.js";
export { SocketClosed, resuming } from "./resuming.js";
