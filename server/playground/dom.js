/** Return a new element with these properties, and these elements and texts in it. */
export function element(name, properties, children = []) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}
