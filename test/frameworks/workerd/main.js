// Adds to the recipe what the checks need: the token, and what the engine has open.
import { hw } from './streams.js'
import recipe from './worker.js'

let rootToken

export default {
  async fetch(request) {
    if (new URL(request.url).pathname !== '/stats') return recipe.fetch(request)
    // Not at the top level: there are no random numbers outside of requests.
    rootToken ??= await hw.createRootToken()
    console.log(`root token: ${rootToken}`)
    return Response.json(hw.stats())
  },
}
