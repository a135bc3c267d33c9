// Adds to the recipe what the checks need: the token, and what the engine has open.
import recipe, { Streams as OfRecipe } from './worker.js'

const wantsStats = (request) => new URL(request.url).pathname === '/stats'

export class Streams extends OfRecipe {
  async fetch(request) {
    if (!wantsStats(request)) return super.fetch(request)
    const hw = await this.hw
    this.rootToken ??= await hw.createRootToken()
    console.log(`root token: ${this.rootToken}`)
    return Response.json(hw.stats())
  }
}

export default {
  async fetch(request, env) {
    if (wantsStats(request)) return env.STREAMS.getByName('streams').fetch(request)
    return recipe.fetch(request, env)
  },
}
