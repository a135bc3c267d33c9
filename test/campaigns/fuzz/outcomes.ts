/** The outcome of a call. Of two decoders that are compared, both may reject an input. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }

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
