/** What a call came to. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }

/** For decoders that are held to another one: both may refuse. */
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
