/** The first of times of which null is never. */
export function earliest(times: readonly (number | null)[]): number | null {
  return times.reduce((min, time) => (min === null || (time !== null && time < min) ? time : min), null)
}
