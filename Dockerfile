# npm run build && npm pack && docker build --tag headwater .
FROM node:22-slim
COPY headwater-*.tgz /tmp/headwater.tgz
RUN npm install --global --omit=dev /tmp/headwater.tgz && npm cache clean --force && rm /tmp/headwater.tgz && install -d -o node /data
USER node
WORKDIR /data
ENV HEADWATER_STORAGE=/data HEADWATER_HOST=0.0.0.0 HEADWATER_LOG=json
VOLUME /data
EXPOSE 8787
CMD ["headwater", "serve"]
