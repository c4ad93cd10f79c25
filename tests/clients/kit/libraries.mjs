// Lets the kit find the libraries of this folder, as if it were installed and not linked: there is one copy of React.
const KIT = new URL("../../../client/dist/", import.meta.url).href;

export function resolve(specifier, context, next) {
  const isLibrary = context.parentURL?.startsWith(KIT) && !specifier.startsWith(".");
  return next(specifier, isLibrary ? { ...context, parentURL: import.meta.url } : context);
}
