import type { World } from './world.ts'

const CLOCK_STEPS_MS = [-5_000, -50, 50, 5_000]

/**
 * External events: engines crash, are closed and opened, and lose their connection, and their clocks are set.
 */
export class Fate {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async act(): Promise<void> {
    const { scheduler, settings, engines, open, history } = this.#world
    const running = engines.filter(({ isOver }) => !isOver)
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
    } else if (kind < 0.45) {
      history.add(engine.name, 'closes', { latestTime: this.#world.latestTime })
      engine.close()
    } else if (settings.trouble === 0) return
    else if (kind < 0.65) {
      history.add(engine.name, 'dies', { latestTime: this.#world.latestTime })
      await engine.die()
    } else if (kind < 0.75) {
      history.add(engine.name, 'loses its connection')
      engine.loseConnection()
    } else if (kind < 0.95) {
      history.add(engine.name, 'has its connection')
      engine.restore()
    } else {
      history.add(engine.name, 'will meet a conflict')
      engine.conflictNext()
    }
  }
}
