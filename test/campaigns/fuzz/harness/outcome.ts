/** The outcome of a call. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }

/** For decoders compared with another one: both may reject. */
export function outcomeOf<Value>(call: () => Value): Outcome<Value> {
  try {
    return { value: call() }
  } catch (error) {
    return { error }
  }
}

export async function settledOutcomeOf<Value>(call: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await call() }
  } catch (error) {
    return { error }
  }
}
