/**
 * Small things that this browser remembers: web storage, which tells other tabs of changes. Where it is forbidden they are forgotten with the
 * page.
 */
export function keep(key: string, value: string, storage: () => Storage = () => localStorage): void {
  try {
    storage().setItem(key, value)
  } catch {
    // Forbidden or full: nothing that anybody would miss for long.
  }
}

export function kept(key: string, storage: () => Storage = () => localStorage): string | null {
  try {
    return storage().getItem(key)
  } catch {
    return null
  }
}
