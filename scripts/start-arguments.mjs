/** The arguments of `headwater` for `npm start -- args`: serve, open, in memory, as far as `args` do not say otherwise. */
export function startArguments(args) {
  const says = (name) => args.some((arg) => arg === name || arg.startsWith(`${name}=`))
  const defaults = []
  if (!says('--open') && !says('--no-open')) defaults.push('--open')
  if (!says('--storage')) defaults.push('--storage', 'memory')
  return ['serve', ...defaults, ...args]
}
