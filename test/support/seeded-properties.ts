import fc from 'fast-check'

const { FAST_CHECK_SEED = '1' } = process.env

/**
 * Takes the place of `fast-check` in tests. What passes once passes always, unless a run asks for other
 * examples: `FAST_CHECK_SEED=random npx vitest run PATH`.
 */
if (FAST_CHECK_SEED !== 'random') fc.configureGlobal({ seed: Number(FAST_CHECK_SEED) })

export default fc
