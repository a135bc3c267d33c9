/** Returns the target with some members replaced. */
export function overridden<Target extends object>(target: Target, own: Partial<Target>): Target {
  return new Proxy(target, {
    get: (_, property: keyof Target & string) => {
      const value = own[property] ?? target[property]
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
