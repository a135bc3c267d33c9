import type { World } from './world.ts'

const CLOCK_STEPS_MS = [-5_000, -50, 50, 5_000]
const YEAR_MS = 365 * 86_400_000
const CLOCK_LEAPS_MS = [-YEAR_MS, 0, YEAR_MS]

/**
 * Faults of engines: they crash, are closed and opened, and lose their connection, and their clocks are set.
 */
export class EngineFaults {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async act(): Promise<void> {
    const { scheduler, settings, engines, open, history } = this.#world
    const running = engines.filter(({ hasEnded }) => !hasEnded)
    if (open.length < settings.engines && (settings.isShared || running.length === 0)) {
      await this.#world.openEngine()
      return
    }
    const engine = scheduler.pick(running)
    const byMs = scheduler.pick(CLOCK_STEPS_MS)
    const kind = scheduler.next()
    if (settings.clockSteps && kind < 0.3) {
      history.add(engine.name, 'clock is set', { byMs, latestTime: this.#world.latestTime })
      engine.clock.step(byMs)
    } else if (settings.clockLeaps && kind < 0.4) {
      const toMs = scheduler.pick(CLOCK_LEAPS_MS)
      history.add(engine.name, 'clock leaps', { toMs, latestTime: this.#world.latestTime })
      engine.clock.leap(toMs)
    } else if (kind < 0.45) {
      history.add(engine.name, 'closes', { latestTime: this.#world.latestTime })
      engine.close()
    } else if (settings.faultRate === 0) return
    else if (kind < 0.65) {
      history.add(engine.name, 'crashes', { latestTime: this.#world.latestTime })
      await engine.crash()
    } else if (kind < 0.75) {
      history.add(engine.name, 'loses its connection')
      engine.loseConnection()
    } else if (kind < 0.95) {
      history.add(engine.name, 'is reconnected')
      engine.restore()
    } else {
      history.add(engine.name, 'gets a conflict next')
      engine.conflictNext()
    }
  }
}
