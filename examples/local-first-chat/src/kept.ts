/** Saves a setting in web storage. Where that is not permitted, the setting is lost with the page. */
export function keep(key: string, value: string, storage: () => Storage = () => localStorage): void {
  try {
    storage().setItem(key, value)
  } catch {
    // Not permitted or full. Settings are not essential.
  }
}

export function kept(key: string, storage: () => Storage = () => localStorage): string | null {
  try {
    return storage().getItem(key)
  } catch {
    return null
  }
}
