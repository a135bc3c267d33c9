import { useState } from 'preact/hooks'

export interface Submit {
  readonly isBusy: boolean
  readonly error: Error | undefined
  /** For the event of a form. */
  onSubmit(event: Event): void
}

/** Runs an action when a form is submitted, one at a time, and keeps its error for the form to show. */
export function useSubmit(action: () => Promise<void>): Submit {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const onSubmit = (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    setBusy(true)
    setError(undefined)
    // Also catches what the action throws before its first request.
    Promise.resolve()
      .then(action)
      .catch(setError)
      .finally(() => setBusy(false))
  }
  return { isBusy, error, onSubmit }
}
