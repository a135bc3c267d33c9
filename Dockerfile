# npm run build && npm pack && docker build --tag headwater .
FROM node:22-slim
COPY headwater-*.tgz /tmp/headwater.tgz
RUN npm install --global --omit=dev /tmp/headwater.tgz aws4fetch@1 && npm cache clean --force && rm /tmp/headwater.tgz && install -d -o node /data
USER node
WORKDIR /data
ENV HEADWATER_STORAGE=/data HEADWATER_HOST=0.0.0.0 HEADWATER_LOG=json
VOLUME /data
EXPOSE 8787
# Asks the server itself, which also says when its storage cannot be read.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["node", "--eval", "fetch(`http://127.0.0.1:${process.env.HEADWATER_PORT ?? 8787}/health`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["headwater", "serve"]
