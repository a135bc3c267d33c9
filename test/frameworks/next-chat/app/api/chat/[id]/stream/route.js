import { isId, unanswered } from '../../../../../chats.js'

export async function GET(_request, { params }) {
  const { id } = await params
  const name = isId(id) ? await unanswered(id) : undefined
  if (name === undefined) return new Response(null, { status: 204 })
  const streamUrl = `/v1/stream/${name}`
  return Response.json({ streamUrl }, { headers: { location: streamUrl } })
}
