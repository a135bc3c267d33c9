/** The same object without the members that are undefined: absent is absent, also where members are counted or stored. */
export function withoutUndefined<Shape extends object>(object: Shape): Shape {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Shape
}

/** Undefined for an object without members. */
export function unlessEmpty<Shape extends object>(object: Shape | undefined): Shape | undefined {
  return object === undefined || Object.keys(object).length === 0 ? undefined : object
}
