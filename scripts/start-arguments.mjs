/** The arguments of `headwater` for `npm start -- args`: serve what is in the directory `data`, as far as `args` do not say otherwise. */
export function startArguments(args) {
  const says = (...names) =>
    names.some((name) => args.some((arg) => arg === name || arg.startsWith(`${name}=`)))
  return ['serve', ...(says('--storage', '--dir') ? [] : ['--dir', 'data']), ...args]
}
