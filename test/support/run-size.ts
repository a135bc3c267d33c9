/** Returns the size for the kind of run that this is. */
export function byRun<Value>({ quick }: { readonly quick: Value; readonly full: Value }): Value {
  return quick
}
