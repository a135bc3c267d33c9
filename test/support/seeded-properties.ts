import fc from 'fast-check'

const { FAST_CHECK_SEED = '1', FAST_CHECK_RUNS = '25' } = process.env

/**
 * Takes the place of `fast-check` in tests. What passes once passes always, unless a run asks for other or
 * for more examples: `FAST_CHECK_SEED=7 FAST_CHECK_RUNS=1000 npx vitest run PATH`.
 */
fc.configureGlobal({ seed: Number(FAST_CHECK_SEED), numRuns: Number(FAST_CHECK_RUNS) })

export default fc
